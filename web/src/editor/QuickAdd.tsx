import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useId, useMemo, useRef } from "react";
import type { NodeType } from "../model/catalog";
import { texts } from "../texts";
import { addByPoint, addBySelection, addByWire } from "./adding";
import classes from "./editor.module.css";
import { fittingTypes } from "./insertion";
import { recentTypes } from "./recent";
import { documentOf, type QuickAdd, useSession, useUi } from "./session";
import { TypeRow } from "./TypeRow";
import { useTypeList } from "./typeList";

const WIDTH = 280;
const HEIGHT = 340;

/** The pop-up to add a step where the pointer is: by name, or from what fits a wire. */
export function QuickAddPopup() {
  const quickAdd = useUi((state) => state.quickAdd);
  return quickAdd === null ? null : <Popup quickAdd={quickAdd} />;
}

function Popup({ quickAdd }: { readonly quickAdd: QuickAdd }) {
  const session = useSession();
  const field = useRef<HTMLInputElement>(null);
  const prefix = useId();
  useEffect(() => field.current?.focus(), []);
  const types = useMemo(() => {
    const all =
      quickAdd.open === null
        ? session.catalog().all
        : fittingTypes(documentOf(session), session.catalog(), quickAdd.open);
    if (quickAdd.open !== null) return all;
    const recent = recentTypes();
    const rank = (type: NodeType): number => (recent.indexOf(type.type) + 1 || 99) as number;
    return all.toSorted((one, other) => rank(one) - rank(other) || one.label.localeCompare(other.label));
  }, [session, quickAdd.open]);
  const close = (): void => {
    session.ui.setState({ quickAdd: null });
    session.canvas.current?.focus();
  };
  const pick = (type: NodeType): void => {
    const { open, at, screen } = quickAdd;
    if (open !== null)
      addByWire(session, type, open, at ?? session.canvas.current?.toFlow(screen) ?? { x: 0, y: 0 });
    else if (at === null) addBySelection(session, type);
    else addByPoint(session, type, at);
    close();
  };
  const list = useTypeList(types, pick);
  const left = Math.max(8, Math.min(quickAdd.screen.x, window.innerWidth - WIDTH - 8));
  const top = Math.max(8, Math.min(quickAdd.screen.y, window.innerHeight - HEIGHT - 8));
  return (
    <>
      <div className={classes.backdrop} onPointerDown={close} aria-hidden="true" />
      <div
        className={classes.quickAdd}
        role="dialog"
        aria-label={texts.editor.quickAdd.label}
        style={{ left, top, width: WIDTH, maxHeight: HEIGHT }}
        onKeyDown={(event) => {
          if (event.key === "Escape") close();
        }}
      >
        <TextInput
          ref={field}
          aria-label={texts.editor.quickAdd.search}
          placeholder={quickAdd.open === null ? texts.editor.quickAdd.search : texts.editor.quickAdd.fits}
          leftSection={<IconSearch size={14} />}
          value={list.query}
          onChange={(event) => list.setQuery(event.currentTarget.value)}
          onKeyDown={list.onKeyDown}
          role="combobox"
          aria-expanded
          aria-controls={`${prefix}-list`}
          aria-activedescendant={list.found.length === 0 ? undefined : `${prefix}-${list.active}`}
        />
        <div
          id={`${prefix}-list`}
          role="listbox"
          aria-label={texts.editor.palette.label}
          className={classes.quickList}
        >
          {list.found.map((type, place) => (
            <TypeRow
              key={`${type.package.name} ${type.type}`}
              id={`${prefix}-${place}`}
              type={type}
              isActive={place === list.active}
              onPick={() => pick(type)}
            />
          ))}
        </div>
        {list.found.length === 0 && (
          <div className={classes.noHit} role="status">
            {texts.editor.palette.noHit(list.query)}
          </div>
        )}
      </div>
    </>
  );
}
