import "@mantine/spotlight/styles.css";
import { useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Spotlight, type SpotlightActionGroupData } from "@mantine/spotlight";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../api/client";
import type { components } from "../api/schema";
import { logOut } from "../app/logout";
import { usePageCommands } from "../app/pageCommands";
import { SECTIONS } from "../app/sections";
import { useMay } from "../app/session";
import { texts } from "../texts";
import { tick } from "../tour/tour";

type Hit = components["schemas"]["SearchHit"];

const words = texts.operations.palette;
const TYPING_MS = 150;

function useHits(text: string): readonly Hit[] {
  const [query] = useDebouncedValue(text.trim(), TYPING_MS);
  const { data } = useQuery({
    queryKey: ["search", query],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/search", { params: { query: { q: query, limit: 12 } } })).items,
    enabled: query !== "",
    placeholderData: (before) => before,
  });
  return query === "" ? [] : (data ?? []);
}

/** Go somewhere, find something, or do something, from the keyboard. */
export function CommandPalette() {
  const [text, setText] = useState("");
  const hits = useHits(text);
  const navigate = useNavigate();
  const mayEdit = useMay("edit");
  const { toggleColorScheme } = useMantineColorScheme();
  const open = (hit: Hit): void => {
    switch (hit.kind) {
      case "workflow":
        return void navigate({ to: "/workflows/$workflowId", params: { workflowId: hit.id } });
      case "run":
        return void navigate({ to: "/runs/$runId", params: { runId: hit.id } });
      case "worker":
        return void navigate({ to: "/workers", search: { worker: hit.id } });
      case "package":
      case "node_type":
        return void navigate({ to: "/packages", search: { package: hit.detail ?? hit.id } });
    }
  };
  const needle = text.trim().toLowerCase();
  const fits = ({ label }: { label?: string }): boolean => (label ?? "").toLowerCase().includes(needle);
  const page = usePageCommands();
  // What a page offers depends on what is selected when the palette opens.
  const [, setOpenings] = useState(0);
  const groups: SpotlightActionGroupData[] = [
    {
      group: page.group,
      actions: page
        .list()
        .map(({ id, label, keys, run }) => ({
          id: `page ${id}`,
          label,
          rightSection: <kbd>{keys}</kbd>,
          onClick: run,
        }))
        .filter(fits),
    },
    {
      group: words.sections,
      actions: SECTIONS.map((section) => ({
        id: section.to,
        label: section.label,
        leftSection: <section.icon size={18} stroke={1.75} />,
        onClick: () => void navigate({ to: section.to }),
      })).filter(fits),
    },
    {
      group: words.actions,
      actions: [
        ...(mayEdit
          ? [
              {
                id: "new",
                label: words.newWorkflow,
                onClick: () => void navigate({ to: "/workflows/new" }),
              },
            ]
          : []),
        { id: "theme", label: words.toggleTheme, onClick: toggleColorScheme },
        {
          id: "keys",
          label: words.shortcuts,
          onClick: () => void navigate({ to: "/settings", search: { tab: "shortcuts" } }),
        },
        { id: "out", label: words.logOut, onClick: () => void logOut() },
      ].filter(fits),
    },
    {
      group: words.found,
      actions: hits.map((hit) => ({
        id: `${hit.kind} ${hit.id}`,
        label: hit.label,
        description: `${words.kinds[hit.kind]} · ${hit.detail ?? hit.id}`,
        onClick: () => open(hit),
      })),
    },
  ];
  return (
    <Spotlight
      actions={groups.filter((group) => group.actions.length > 0)}
      query={text}
      onQueryChange={setText}
      filter={(_, all) => all}
      onSpotlightOpen={() => {
        tick("find");
        setOpenings((count) => count + 1);
      }}
      attributes={{ content: { "aria-label": words.open } }}
      shortcut={["mod + K"]}
      nothingFound={words.nothing}
      highlightQuery
      scrollable
      maxHeight={420}
      searchProps={{
        leftSection: <IconSearch size={18} stroke={1.5} />,
        placeholder: words.placeholder,
        "aria-label": words.open,
      }}
    />
  );
}
