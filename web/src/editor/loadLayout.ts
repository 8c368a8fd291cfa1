import { chunk } from "../app/chunks";

/** The library that lays a graph out is loaded when it is first asked for. */
export const loadLayout = chunk(() => import("../model/layout"));
