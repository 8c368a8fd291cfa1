import { Modal, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { Time } from "../app/ListPage";
import { Panel } from "../app/PanelStates";
import { texts } from "../texts";
import { shortId } from "../values/format";
import { Nothing } from "./Panel";
import { StatusPill } from "./StatusPill";
import shared from "./shared.module.css";

interface Props {
  readonly workflowId: string;
  readonly except: string;
  readonly onPick: (runId: string) => void;
  readonly onClose: () => void;
}

/** Choose another run of the same workflow. */
export function RunPicker({ workflowId, except, onPick, onClose }: Props) {
  const query = useQuery({
    queryKey: ["runs", "of", workflowId],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/runs", { params: { query: { workflowId, limit: 50 } } })).items.filter(
        (run) => run.runId !== except,
      ),
  });
  return (
    <Modal opened onClose={onClose} title={texts.runView.compare.pick} size="md">
      <Panel query={query}>
        {(runs) =>
          runs.length === 0 ? (
            <Nothing title={texts.runView.list.noMatch} />
          ) : (
            <ul className={shared.rowButtons}>
              {runs.map((run) => (
                <li key={run.runId}>
                  <UnstyledButton onClick={() => onPick(run.runId)}>
                    <StatusPill status={run.status} />
                    <code>#{shortId(run.runId)}</code>
                    <Time at={run.startedAt ?? run.createdAt} />
                  </UnstyledButton>
                </li>
              ))}
            </ul>
          )
        }
      </Panel>
    </Modal>
  );
}
