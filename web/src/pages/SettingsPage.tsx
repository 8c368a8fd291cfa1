import { IconSettings } from "@tabler/icons-react";
import { EmptyPage } from "../app/EmptyPage";
import { texts } from "../texts";

export function SettingsPage() {
  return <EmptyPage {...texts.pages.settings} icon={IconSettings} />;
}
