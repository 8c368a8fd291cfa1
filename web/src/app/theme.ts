import { createTheme, localStorageColorSchemeManager, type MantineColorsTuple } from "@mantine/core";
import { texts } from "../texts";

const accent: MantineColorsTuple = [
  "#edf2ff",
  "#dbe4ff",
  "#bac8ff",
  "#91a7ff",
  "#748ffc",
  "#5c7cfa",
  "#4263eb",
  "#3b5bdb",
  "#364fc7",
  "#2f44ad",
];

/** Mantine's red, with darker last shades: white text on a button needs a contrast of 4.5. */
const red: MantineColorsTuple = [
  "#fff5f5",
  "#ffe3e3",
  "#ffc9c9",
  "#ffa8a8",
  "#ff8787",
  "#ff6b6b",
  "#d32f2f",
  "#c22727",
  "#ad2020",
  "#941919",
];

/** The surfaces of `base.css` in the order that Mantine takes them from: text first, the deepest surface last. */
const dark: MantineColorsTuple = [
  "#e6e8ee",
  "#c4c9d4",
  "#9aa3b2",
  "#6d7482",
  "#31353f",
  "#2a2e37",
  "#22262e",
  "#16181d",
  "#121419",
  "#0d0f13",
];

const CLOSE = { "aria-label": texts.close } as const;
/** The library's grey is too light on white. */
const NOTIFICATION = { description: { color: "var(--text-dim)" } } as const;

export const theme = createTheme({
  respectReducedMotion: true,
  fontFamily: '"Inter Variable", system-ui, sans-serif',
  fontFamilyMonospace: '"JetBrains Mono Variable", ui-monospace, monospace',
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.8125rem", lg: "1rem", xl: "1.25rem" },
  lineHeights: { xs: "1.34", sm: "1.385", md: "1.385", lg: "1.375", xl: "1.3" },
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "1.25rem", lineHeight: "1.3" }, h2: { fontSize: "1rem", lineHeight: "1.375" } },
  },
  defaultRadius: 4,
  primaryColor: "accent",
  primaryShade: { light: 6, dark: 6 },
  colors: { accent, dark, red },
  components: {
    Button: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "xs" } },
    Drawer: { defaultProps: { overlayProps: { backgroundOpacity: 0.25 }, closeButtonProps: CLOSE } },
    Modal: { defaultProps: { overlayProps: { backgroundOpacity: 0.35 }, closeButtonProps: CLOSE } },
    Select: { defaultProps: { size: "xs" } },
    Autocomplete: { defaultProps: { size: "xs" } },
    Notification: { defaultProps: { closeButtonProps: CLOSE }, styles: NOTIFICATION },
    // Its placeholder takes the focus and is no item of a menu: screen readers stumble over it.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 400 } },
  },
});

/** The same key is read by `theme-boot.js` before the first paint. */
export const colorSchemes = localStorageColorSchemeManager({ key: "astraflow-color-scheme" });
