/** Addresses that a text from a package may lead to. */
export const isSafeLink = (href: string): boolean => /^(https?:|mailto:)/i.test(href.trim());
