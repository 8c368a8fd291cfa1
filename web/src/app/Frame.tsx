import { ActionIcon, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import {
  IconMoon,
  IconPackage,
  IconPlayerPlay,
  IconServer2,
  IconSettings,
  IconSitemap,
  IconSun,
} from "@tabler/icons-react";
import { Link, Outlet } from "@tanstack/react-router";
import type { ComponentType } from "react";
import icon from "../assets/icon.svg";
import { texts } from "../texts";
import classes from "./frame.module.css";
import { LivePill } from "./LivePill";

interface Section {
  readonly to: "/workflows" | "/runs" | "/workers" | "/packages" | "/settings";
  readonly label: string;
  readonly icon: ComponentType<{ size: number; stroke: number }>;
}

const SECTIONS: readonly Section[] = [
  { to: "/workflows", label: texts.nav.workflows, icon: IconSitemap },
  { to: "/runs", label: texts.nav.runs, icon: IconPlayerPlay },
  { to: "/workers", label: texts.nav.workers, icon: IconServer2 },
  { to: "/packages", label: texts.nav.packages, icon: IconPackage },
  { to: "/settings", label: texts.nav.settings, icon: IconSettings },
];

function ThemeSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const label = isDark ? texts.theme.switchToLight : texts.theme.switchToDark;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={label}
        onClick={() => setColorScheme(isDark ? "light" : "dark")}
      >
        {isDark ? <IconSun size={16} stroke={1.75} /> : <IconMoon size={16} stroke={1.75} />}
      </ActionIcon>
    </Tooltip>
  );
}

/** The top bar, the rail of sections, and the page. */
export function Frame() {
  return (
    <div className={classes.frame}>
      <a className={classes.skip} href="#content">
        {texts.skipToContent}
      </a>
      <header className={classes.top}>
        <Link to="/workflows" className={classes.brand}>
          <span className={classes.logo}>
            <img src={icon} alt="" width={22} height={22} />
          </span>
          {texts.product}
        </Link>
        <span className={classes.grow} />
        <LivePill />
        <ThemeSwitch />
      </header>
      <nav className={classes.rail} aria-label={texts.nav.label}>
        {SECTIONS.map((section) => (
          <Tooltip key={section.to} label={section.label} position="right">
            <Link
              to={section.to}
              aria-label={section.label}
              className={section.to === "/settings" ? classes.last : undefined}
            >
              <section.icon size={20} stroke={1.75} />
            </Link>
          </Tooltip>
        ))}
      </nav>
      <main id="content" className={classes.content} tabIndex={-1}>
        <Outlet />
      </main>
    </div>
  );
}
