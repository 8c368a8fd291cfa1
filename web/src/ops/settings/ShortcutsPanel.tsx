import { Kbd, Table } from "@mantine/core";
import classes from "../ops.module.css";
import { SHORTCUTS } from "../shortcuts";

/** All shortcuts, by where they count. */
export function ShortcutsPanel() {
  return (
    <div className={classes.shortcuts}>
      {SHORTCUTS.map((group) => (
        <section key={group.title}>
          <h3>{group.title}</h3>
          <Table verticalSpacing={3}>
            <Table.Tbody>
              {group.rows.map(([keys, does]) => (
                <Table.Tr key={does}>
                  <Table.Td>{does}</Table.Td>
                  <Table.Td ta="right">
                    {keys.split(" ").map((key) => (
                      <Kbd key={key} size="xs" ml={4}>
                        {key}
                      </Kbd>
                    ))}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      ))}
    </div>
  );
}
