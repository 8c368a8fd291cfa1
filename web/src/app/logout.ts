import { api } from "../api/client";
import { texts } from "../texts";
import { tellError } from "./actions";

/** End the session of this browser, in all of its tabs, and go to the page to log in with. */
export async function logOut(): Promise<void> {
  try {
    await api.POST("/api/v1/auth/logout");
  } catch (error) {
    // Whoever leaves the machine must know that the session goes on.
    tellError(texts.userMenu.logOutFailed, error);
    return;
  }
  location.assign("/login");
}
