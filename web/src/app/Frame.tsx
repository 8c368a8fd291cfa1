import { ActionIcon, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { IconMoon, IconSearch, IconSun } from "@tabler/icons-react";
import { Link, Outlet } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import icon from "../assets/icon.svg";
import { texts } from "../texts";
import { TourButton } from "../tour/TourButton";
import { lazyChunk } from "./chunks";
import classes from "./frame.module.css";
import { useGlobalKeys } from "./globalKeys";
import { LivePill } from "./LivePill";
import { SectionRail } from "./SectionRail";
import { UserMenu } from "./UserMenu";

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

const CommandPalette = lazyChunk(async () => ({
  default: (await import("../ops/CommandPalette")).CommandPalette,
}));

/** The palette is loaded when the page has settled: nobody needs it in the first moment. */
function usePalette(): boolean {
  const [isReady, setIsReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsReady(true), PALETTE_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return isReady;
}

const PALETTE_AFTER_MS = 500;

function PaletteButton() {
  const label = texts.operations.palette.open;
  const open = (): void => void import("@mantine/spotlight").then(({ spotlight }) => spotlight.open());
  return (
    <button type="button" className={classes.find} onClick={open}>
      <IconSearch size={14} stroke={1.75} aria-hidden="true" />
      <span>{label}</span>
      <kbd>Ctrl K</kbd>
    </button>
  );
}

/** The top bar, the rail of sections, and the page. */
export function Frame() {
  useGlobalKeys();
  const hasPalette = usePalette();
  return (
    <div className={classes.frame}>
      <a className={classes.skip} href="#content">
        {texts.skipToContent}
      </a>
      <header className={classes.top}>
        <Link to="/workflows" className={classes.brand} aria-label={texts.product}>
          <span className={classes.logo}>
            <img src={icon} alt="" width={22} height={22} />
          </span>
          <span className={classes.product}>{texts.product}</span>
        </Link>
        <div id="top-slot" className={classes.slot} />
        <TourButton />
        <PaletteButton />
        <LivePill />
        <ThemeSwitch />
        <UserMenu />
      </header>
      <SectionRail />
      <main id="content" className={classes.content} tabIndex={-1}>
        <Outlet />
      </main>
      {hasPalette && (
        <Suspense>
          <CommandPalette />
        </Suspense>
      )}
    </div>
  );
}
