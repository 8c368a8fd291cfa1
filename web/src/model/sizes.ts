/** How large steps are drawn, apart from the layout, whose library is loaded when somebody tidies up. */

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const GRID = 8;
export const USUAL_SIZE: Size = { width: 224, height: 88 };
