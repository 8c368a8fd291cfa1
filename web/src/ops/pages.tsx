/** Lists that come in pages. */

import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
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

/** Pages that are read one after the other until all are there, for lists that are searched here and not by the API. */
export function useAllPages<Row>(...given: Parameters<typeof usePages<Row>>) {
  const query = usePages<Row>(...given);
  const { hasNextPage, isFetching, isError, fetchNextPage } = query;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  return query;
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
