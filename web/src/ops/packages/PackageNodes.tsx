import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { Panel } from "../../app/PanelStates";
import { iconOf } from "../../canvas/icons";
import type { NodeType } from "../../model/catalog";
import { portsOf } from "../../model/ports";
import { texts } from "../../texts";
import { plainOf } from "../../values/plainText";
import classes from "../ops.module.css";

const words = texts.operations.packages;
const NEUTRAL = "#6b7280";

interface Props {
  readonly name: string;
  readonly version: string;
}

/** The step types of a version, with their ports. */
export function PackageNodes({ name, version }: Props) {
  const query = useQuery({
    queryKey: ["packages", "nodes", name, version],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/catalog/nodes", { params: { query: { package: name } } }))
        .items as unknown as readonly NodeType[],
  });
  return (
    <Panel query={query}>
      {(types) => (
        <Table verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{words.step}</Table.Th>
              <Table.Th>{words.inputs}</Table.Th>
              <Table.Th>{words.outputs}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {types.map((type) => (
              <NodeRow key={type.type} type={type} />
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Panel>
  );
}

function NodeRow({ type }: { readonly type: NodeType }) {
  const Icon = iconOf(type.icon);
  const ports = portsOf({ id: "", type: type.type }, type);
  const namesOf = (side: "inputs" | "outputs"): string =>
    [...ports[side].values()]
      .filter((port) => port.kind === "data")
      .map((port) => port.key)
      .join(", ");
  return (
    <Table.Tr>
      <Table.Td>
        <div className={classes.nodeType}>
          <span className={classes.tile} style={{ background: type.color ?? NEUTRAL }} aria-hidden="true">
            <Icon size={16} stroke={1.75} />
          </span>
          <span>
            {type.label} <span className={`${classes.mono} ${classes.dim}`}>{type.type}</span>
            <br />
            <span className={classes.dim}>{plainOf(type.description ?? "")}</span>
          </span>
        </div>
      </Table.Td>
      <Table.Td className={classes.mono}>{namesOf("inputs")}</Table.Td>
      <Table.Td className={classes.mono}>{namesOf("outputs")}</Table.Td>
    </Table.Tr>
  );
}
