import {
  IconClockPlay,
  IconPackage,
  IconPlayerPlay,
  IconServer2,
  IconSettings,
  IconSitemap,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import { texts } from "../texts";

interface Section {
  readonly to: "/workflows" | "/runs" | "/triggers" | "/workers" | "/packages" | "/settings";
  readonly label: string;
  readonly icon: ComponentType<{ size: number; stroke: number }>;
}

/** The sections of the app, as the rail shows them. */
export const SECTIONS: readonly Section[] = [
  { to: "/workflows", label: texts.nav.workflows, icon: IconSitemap },
  { to: "/runs", label: texts.nav.runs, icon: IconPlayerPlay },
  { to: "/triggers", label: texts.nav.triggers, icon: IconClockPlay },
  { to: "/workers", label: texts.nav.workers, icon: IconServer2 },
  { to: "/packages", label: texts.nav.packages, icon: IconPackage },
  { to: "/settings", label: texts.nav.settings, icon: IconSettings },
];
