import { IconPackage } from "@tabler/icons-react";
import { EmptyPage } from "../app/EmptyPage";
import { texts } from "../texts";

export function PackagesPage() {
  return <EmptyPage {...texts.pages.packages} icon={IconPackage} />;
}
