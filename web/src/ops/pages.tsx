/** Lists that come in pages. */

import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { texts } from "../texts";

interface Page<Row> {
  readonly items: readonly Row[];
  readonly nextCursor?: string | null;
}

/** All pages that were asked for so far, as one list. The first part of the key says which events change it. */
export function usePages<Row>(
  key: readonly unknown[],
  load: (cursor: string | undefined) => Promise<Page<Row>>,
) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => load(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    placeholderData: (before) => before,
  });
  return { ...query, data: query.data?.pages.flatMap((page) => page.items) };
}

interface MoreProps {
  readonly query: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  };
}

export function More({ query }: MoreProps) {
  if (!query.hasNextPage) return null;
  return (
    <Button
      variant="default"
      loading={query.isFetchingNextPage}
      onClick={() => void query.fetchNextPage()}
      w="fit-content"
      mx="auto"
      mt="sm"
    >
      {texts.operations.loadMore}
    </Button>
  );
}
