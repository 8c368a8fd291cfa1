/** Problems of a document, for the forms that they belong to. */

import type { FieldError } from "../forms/host";
import { isBelow } from "../forms/values";
import type { Problem } from "../model/validation/problems";

/** The problems at a place and below it, with pointers from there. */
export function errorsBelow(problems: readonly Problem[], place: string): readonly FieldError[] {
  return problems.flatMap(({ pointer, message }) =>
    isBelow(pointer, place) ? [{ pointer: pointer.slice(place.length), message }] : [],
  );
}

export const countBelow = (problems: readonly Problem[], place: string): number =>
  problems.filter((one) => isBelow(one.pointer, place)).length;
