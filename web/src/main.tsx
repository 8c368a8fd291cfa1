import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./styles/fonts.css";
import "./styles/base.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { loadChunksAhead } from "./app/chunks";
import { takeNonce } from "./app/nonce";
import { router } from "./app/router";
import { SessionGate } from "./app/SessionGate";
import { colorSchemes, theme } from "./app/theme";

const nonce = takeNonce();
/** What the scheduler refuses it refuses again. */
const mayRetry = (failures: number, error: Error): boolean =>
  failures < 1 && !(error instanceof ApiError && error.status < 500);
const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 5_000, retry: mayRetry } } });
const place = document.getElementById("root");
if (place === null) throw new Error("the page has no place for the app");

loadChunksAhead();
createRoot(place).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={colorSchemes}
      getStyleNonce={() => nonce}
    >
      <Notifications position="bottom-right" limit={4} />
      <QueryClientProvider client={queries}>
        <SessionGate>
          <RouterProvider router={router} />
        </SessionGate>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
