/**
 * The nonce of this response: style elements that scripts make need it. Mantine asks for it; `react-remove-scroll`,
 * which Mantine's dialogs use, reads the global of webpack's name.
 */
export function takeNonce(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]');
  const nonce = meta?.nonce || meta?.getAttribute("nonce") || "";
  (globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = nonce;
  return nonce;
}
