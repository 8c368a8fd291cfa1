import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import { formatBytes } from "../../values/format";
import { Facts, Meter } from "../parts";

const words = texts.operations.about;

/** What serves here, and its room. */
export function AboutPanel() {
  const query = useQuery({
    queryKey: ["about"],
    queryFn: async () => dataOf(await api.GET("/api/v1/about")),
  });
  return (
    <Panel query={query}>
      {(about) => {
        const used = about.disk.totalBytes - about.disk.freeBytes;
        return (
          <>
            <Facts
              rows={[
                [texts.columns.version, about.version],
                [words.python, about.python],
                [words.store, about.store],
                [words.schema, about.schemaVersion],
                [words.storeSize, formatBytes(about.disk.storeBytes)],
                [
                  words.disk,
                  <Meter
                    key="disk"
                    label={words.disk}
                    value={used}
                    of={about.disk.totalBytes}
                    text={words.diskUse(formatBytes(used), formatBytes(about.disk.totalBytes))}
                  />,
                ],
              ]}
            />
            <p>
              <Anchor href="/api/docs">{texts.session.apiDocs}</Anchor>
            </p>
          </>
        );
      }}
    </Panel>
  );
}
