import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

export type Problem = components["schemas"]["Problem"];
export type Session = components["schemas"]["BrowserSession"];

/** A response that is an error: what the scheduler says about it, and the request to ask it about. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly requestId: string | null,
    /** What is wrong with a document, item by item. */
    readonly errors: NonNullable<Problem["errors"]> = [],
  ) {
    super(message);
  }
}

/** Requests that change something carry the token of the session, which a page of another site does not know. */
let csrfToken = "";

/** For requests that are not made by the client below. */
export const csrf = (): string => csrfToken;

export const api = createClient<paths>({ baseUrl: location.origin });

api.use({
  onRequest({ request }) {
    if (csrfToken !== "" && request.method !== "GET") request.headers.set("x-csrf-token", csrfToken);
    return request;
  },
  async onResponse({ response }) {
    if (response.ok) return;
    const problem = (await response
      .clone()
      .json()
      .catch(() => null)) as Problem | null;
    const title = problem?.detail ?? problem?.title ?? response.statusText;
    throw new ApiError(
      title,
      response.status,
      problem?.code ?? "",
      response.headers.get("x-request-id"),
      problem?.errors ?? [],
    );
  },
});

/** What a request has brought. Errors are thrown before. */
export function dataOf<T>(answer: { data?: T }): T {
  if (answer.data === undefined) throw new ApiError("The response is empty", 0, "", null);
  return answer.data;
}

/** Who is logged in; null if nobody is. */
export async function readSession(): Promise<Session | null> {
  try {
    const session = dataOf(await api.GET("/api/v1/auth/session"));
    csrfToken = session.csrfToken ?? "";
    return session;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}
