/** A workflow definition as its JSON has it. What the editor does not know stays in the document (`json/tree`). */

import type { Json, JsonFields } from "./json/tree";

export interface Position {
  readonly x: number;
  readonly y: number;
}

export type BindingMode = "read" | "write" | "two_way";

export interface Binding {
  readonly path: string;
  readonly mode?: BindingMode | null;
  readonly unwrap?: string | null;
}

export type PortKind = "data" | "control" | "error";

export interface PortDefinition {
  readonly key: string;
  readonly label?: string | null;
  readonly binding?: Binding | null;
  readonly multiple?: boolean | null;
  readonly kind?: PortKind | null;
}

export interface Widget {
  readonly key: string;
  readonly label?: string | null;
  readonly component?: string | null;
  readonly binding?: Binding | null;
  readonly options?: JsonFields | null;
}

export interface NodeUi {
  readonly inputPorts?: readonly PortDefinition[] | null;
  readonly outputPorts?: readonly PortDefinition[] | null;
  readonly widgets?: readonly Widget[] | null;
}

export interface NodeSchemas {
  readonly parameters?: Json;
  readonly results?: Json;
}

export interface MapSettings {
  readonly over: string;
  readonly concurrency?: number | null;
  readonly item?: string | null;
  readonly collect?: string | null;
  readonly failurePolicy?: "stop" | "finish" | "collect" | null;
}

export interface NodeDefinition {
  readonly id: string;
  readonly type: string;
  readonly package?: { readonly name: string; readonly version?: string | null } | null;
  readonly label?: string | null;
  readonly position?: Position | null;
  readonly parameters?: JsonFields | null;
  readonly schema?: NodeSchemas | null;
  readonly ui?: NodeUi | null;
  readonly middlewares?: readonly string[] | null;
  readonly onFailure?: string | null;
  readonly onCancel?: string | null;
  readonly retry?: object | null;
  readonly workerHints?: object | null;
  readonly affinity?: object | null;
  readonly when?: string | null;
  readonly disabled?: boolean | null;
  readonly parent?: string | null;
  readonly map?: MapSettings | null;
}

export interface EdgeEnd {
  readonly node: string;
  readonly port?: string | null;
}

export interface EdgeDefinition {
  readonly source: EdgeEnd;
  readonly target: EdgeEnd;
  readonly id?: string | null;
  readonly when?: string | null;
}

/** A text on the canvas. The scheduler does not read it. */
export interface CanvasNote {
  readonly id: string;
  readonly text: string;
  readonly position: Position;
  readonly width: number;
  readonly height: number;
  readonly color?: string;
}

/** A frame around some nodes. It changes nothing in how they run; a container does. */
export interface CanvasGroup {
  readonly id: string;
  readonly label: string;
  readonly nodes: readonly string[];
  readonly color?: string;
}

/** What the editor keeps for itself in a document. */
export const EDITOR_KEY = "x-editor";

export const CONTAINER_TYPE = "core.container";
export const CALL_TYPE = "core.call";
export const IF_TYPE = "core.if";
export const SWITCH_TYPE = "core.switch";
