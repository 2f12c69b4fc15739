package check

// Clients returns the checkers of what clients and their recipes may rely on.
func Clients(h *History, p Present, reached SessionsReached) []Checker {
	return []Checker{
		newAtMostOnce(), ackedWrites{h}, sessionOrder{}, newWatchOrder(h), newRealTime(), claims{p}, newLeaseWaits(), &fence{}, shown{h},
		newAsIssued(), newRealEvents(h), possibleLeaders{p}, newCommits(), newBarriers(p), newItems(), newCaches(h), newCounts(),
		newBarrierPasses(), newShares(p, h), newMultiLocks(p), newAnnouncements(), newRegistrations(p), onlyCommitted{h},
		newLocalSessions(p, reached), newLeases(p), newQuorums(p), newExpiry(p), newFresh(p, h), newMoves(p, h), newRemovals(p), newPromises(p, h), newLegal(h), newElections(p), newKeptConnections(p), newTerms(p),
	}
}
