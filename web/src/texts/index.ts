/** The English texts of the app, in one place. Sentence case; verbs on buttons. Each part of the app has a file. */

import { editor } from "./editor";
import { forms } from "./forms";
import { frame } from "./frame";
import { operations } from "./operations";
import { runView } from "./runView";
import { tour } from "./tour";

export const texts = { ...frame, editor, forms, operations, runView, tour } as const;
