import { IconPlayerPlay } from "@tabler/icons-react";
import { EmptyPage } from "../app/EmptyPage";
import { texts } from "../texts";

export function RunsPage() {
  return <EmptyPage {...texts.pages.runs} icon={IconPlayerPlay} />;
}
