import { Tabs, Title } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ComponentType, Suspense } from "react";
import { lazyChunk } from "../../app/chunks";
import { Loading } from "../../app/PanelStates";
import { may, type Right } from "../../app/rights";
import { useSession } from "../../app/session";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { readSettingsSearch, type SettingsTab } from "./search";

const words = texts.operations.settings;

interface Section {
  readonly id: SettingsTab;
  /** Missing: for everybody. */
  readonly right?: Right;
  readonly panel: ComponentType;
}

const SECTIONS: readonly Section[] = [
  { id: "you", panel: lazyChunk(async () => ({ default: (await import("./YouPanel")).YouPanel })) },
  {
    id: "secrets",
    panel: lazyChunk(async () => ({ default: (await import("./SecretsPanel")).SecretsPanel })),
  },
  { id: "tokens", panel: lazyChunk(async () => ({ default: (await import("./TokensPanel")).TokensPanel })) },
  {
    id: "users",
    right: "admin",
    panel: lazyChunk(async () => ({ default: (await import("./UsersPanel")).UsersPanel })),
  },
  { id: "pools", panel: lazyChunk(async () => ({ default: (await import("./PoolsPanel")).PoolsPanel })) },
  {
    id: "audit",
    right: "admin",
    panel: lazyChunk(async () => ({ default: (await import("./AuditPanel")).AuditPanel })),
  },
  {
    id: "shortcuts",
    panel: lazyChunk(async () => ({ default: (await import("./ShortcutsPanel")).ShortcutsPanel })),
  },
  { id: "about", panel: lazyChunk(async () => ({ default: (await import("./AboutPanel")).AboutPanel })) },
];

export function SettingsPage() {
  const { tab = "you" } = useSearch({ from: "/settings" });
  const navigate = useNavigate({ from: "/settings" });
  const session = useSession();
  const open = SECTIONS.filter((section) => section.right === undefined || may(session, section.right));
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <Title order={1}>{texts.pages.settings.title}</Title>
      </div>
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) => void navigate({ search: readSettingsSearch({ tab: next }) })}
      >
        <Tabs.List>
          {open.map((section) => (
            <Tabs.Tab key={section.id} value={section.id}>
              {words.tabs[section.id]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {open.map((section) => (
          <Tabs.Panel key={section.id} value={section.id} pt="md">
            <Suspense fallback={<Loading />}>
              <section.panel />
            </Suspense>
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  );
}
