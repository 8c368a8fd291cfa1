import { IconSitemap } from "@tabler/icons-react";
import { EmptyPage } from "../app/EmptyPage";
import { texts } from "../texts";

export function WorkflowsPage() {
  return <EmptyPage {...texts.pages.workflows} icon={IconSitemap} />;
}
