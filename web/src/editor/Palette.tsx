import { ActionIcon, ScrollArea, TextInput, Tooltip } from "@mantine/core";
import { IconLayoutSidebarLeftCollapse, IconPlus, IconSearch } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useId, useMemo } from "react";
import type { NodeCatalog, NodeType } from "../model/catalog";
import { texts } from "../texts";
import { addBySelection } from "./adding";
import classes from "./editor.module.css";
import { recentTypes } from "./recent";
import { categoriesOf } from "./search";
import { useSession } from "./session";
import { TypeRow } from "./TypeRow";
import { useTypeList } from "./typeList";

interface Section {
  readonly name: string;
  readonly types: readonly NodeType[];
}

const words = texts.editor.palette;

function sectionsOf(all: readonly NodeType[], found: readonly NodeType[], query: string): readonly Section[] {
  if (query.trim() !== "") return [{ name: words.found(found.length), types: found }];
  const recent = recentTypes().flatMap((name) => all.find((type) => type.type === name) ?? []);
  const categories = categoriesOf(all);
  return recent.length > 0 ? [{ name: words.recent, types: recent }, ...categories] : categories;
}

/** All types of steps: search, drag, or Enter to add one after the selected step. */
export function Palette({
  catalog,
  onCollapse,
}: {
  readonly catalog: NodeCatalog;
  readonly onCollapse: () => void;
}) {
  const session = useSession();
  const add = (type: NodeType): void => addBySelection(session, type);
  const list = useTypeList(catalog.all, add);
  const prefix = useId();
  const sections = useMemo(
    () => sectionsOf(catalog.all, list.found, list.query),
    [catalog, list.found, list.query],
  );
  const isSearching = list.query.trim() !== "";
  const active = isSearching ? list.found[list.active] : undefined;
  const idOf = (section: Section, type: NodeType): string =>
    `${prefix}-${section.name}-${type.package.name}-${type.type}`;
  const activeSection = sections[0];
  return (
    <nav className={classes.palette} aria-label={words.label}>
      <div className={classes.paletteHead}>
        <TextInput
          aria-label={words.search}
          placeholder={words.search}
          leftSection={<IconSearch size={14} />}
          value={list.query}
          onChange={(event) => list.setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") {
              list.setQuery("");
              event.currentTarget.blur();
            } else if (isSearching) list.onKeyDown(event);
          }}
          role="combobox"
          aria-expanded
          aria-controls={`${prefix}-list`}
          aria-activedescendant={
            active !== undefined && activeSection !== undefined ? idOf(activeSection, active) : undefined
          }
        />
        <Tooltip label={words.collapse}>
          <ActionIcon variant="subtle" color="gray" aria-label={words.collapse} onClick={onCollapse}>
            <IconLayoutSidebarLeftCollapse size={16} stroke={1.75} />
          </ActionIcon>
        </Tooltip>
      </div>
      <ScrollArea
        className={classes.paletteList}
        type="hover"
        scrollbarSize={8}
        viewportProps={{ tabIndex: 0 }}
      >
        <div id={`${prefix}-list`} role="listbox" aria-label={words.label}>
          {sections.map((section) => (
            // biome-ignore lint/a11y/useSemanticElements: options are grouped inside of a list box
            <div key={section.name} role="group" aria-label={section.name}>
              <div className={classes.category} aria-hidden="true">
                <span>{section.name}</span>
                {!isSearching && <span>{section.types.length}</span>}
              </div>
              {section.types.map((type) => (
                <TypeRow
                  key={`${type.package.name} ${type.type}`}
                  id={idOf(section, type)}
                  type={type}
                  isActive={type === active}
                  isDraggable
                  onPick={() => add(type)}
                />
              ))}
            </div>
          ))}
        </div>
        {isSearching && list.found.length === 0 && (
          <div className={classes.noHit} role="status">
            {words.noHit(list.query)}
          </div>
        )}
      </ScrollArea>
      <Link to="/packages" className={classes.packagesLink}>
        <IconPlus size={14} stroke={1.75} />
        {words.packages}
      </Link>
    </nav>
  );
}
