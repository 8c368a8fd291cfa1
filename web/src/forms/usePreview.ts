import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { previewFrom } from "./expressions/question";
import type { ExpressionScope, Preview } from "./host";

const SETTLE_MS = 300;

/** What an expression gives: evaluated here if possible, else by the scheduler once the person pauses. */
export function usePreview(scope: ExpressionScope | null, text: string): Preview | null {
  const here = scope?.preview(text) ?? null;
  const [settled] = useDebouncedValue(text, SETTLE_MS);
  const question = here?.kind === "later" && settled === text ? (scope?.question(text) ?? null) : null;
  const { data } = useQuery({
    queryKey: ["expression", question],
    // A question that is no longer asked is cancelled by its signal.
    queryFn: async ({ signal }) =>
      question === null
        ? null
        : previewFrom(
            dataOf(await api.POST("/api/v1/expressions/evaluate", { body: question as never, signal })),
          ),
    enabled: question !== null,
    retry: false,
  });
  return question === null ? here : (data ?? here);
}
