import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The scheduler that the development server asks. */
const SCHEDULER = process.env.ASTRA_DEV_URL ?? "http://127.0.0.1:8080";
/** It takes changes from its own pages only. */
const TO_SCHEDULER = { target: SCHEDULER, changeOrigin: true, headers: { origin: SCHEDULER } };

/** The server puts a new nonce in the place of this text in each response. */
export const NONCE = "__CSP_NONCE__";

/**
 * The script that sets the colour scheme must run before the first paint: it is a classic script that blocks.
 * Vite bundles module scripts only, so that this one is emitted here, with the hash of its content in its name.
 */
function themeScript(): Plugin {
  const source = readFileSync(here("src/theme-boot.js"), "utf8");
  return {
    name: "theme-script",
    apply: "build",
    buildStart() {
      this.emitFile({ type: "asset", name: "theme-boot.js", source });
    },
    transformIndexHtml: {
      order: "post",
      handler(html, context) {
        const found = Object.keys(context.bundle ?? {}).find((name) => name.includes("theme-boot-"));
        if (found === undefined) throw new Error("the theme script is not in the bundle");
        return html.replace("<!-- theme-boot -->", `<script src="/${found}"></script>`);
      },
    },
  };
}

export default defineConfig({
  plugins: [react(), themeScript()],
  html: { cspNonce: NONCE },
  build: {
    outDir: process.env.ASTRA_WEB_OUT ?? here("../src/astraflow/web/dist"),
    emptyOutDir: true,
    sourcemap: false,
    target: "es2022",
    // A data URL would need a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1024,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": TO_SCHEDULER, "/login": TO_SCHEDULER } },
  test: { include: ["tests/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
});
