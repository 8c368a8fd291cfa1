import {
  IconClockPlay,
  IconPackage,
  IconPlayerPlay,
  IconServer2,
  IconSettings,
  IconSitemap,
  IconUserCheck,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { texts } from "../texts";

interface Section {
  readonly to: "/workflows" | "/runs" | "/approvals" | "/triggers" | "/workers" | "/packages" | "/settings";
  readonly label: string;
  readonly icon: ComponentType<{ size: number; stroke: number }>;
}

/** The sections of the app, as the rail shows them. */
export const SECTIONS: readonly Section[] = [
  { to: "/workflows", label: texts.nav.workflows, icon: IconSitemap },
  { to: "/runs", label: texts.nav.runs, icon: IconPlayerPlay },
  { to: "/approvals", label: texts.nav.approvals, icon: IconUserCheck },
  { to: "/triggers", label: texts.nav.triggers, icon: IconClockPlay },
  { to: "/workers", label: texts.nav.workers, icon: IconServer2 },
  { to: "/packages", label: texts.nav.packages, icon: IconPackage },
  { to: "/settings", label: texts.nav.settings, icon: IconSettings },
];
