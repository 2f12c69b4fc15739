// Package cache holds the state machine of a [Cache], a local copy of a tree that follows the changes of
// the tree.
//
// The driver steps the events of the tree watch as claim.TreeEvents, before the Reply to any request that the
// server answered later. It steps the end of the watch as claim.TreeWatchOver. Each step combines all its
// reads into one request.
//
// Read cache.go first, then cache_follow.go and cache_read.go.
package cache
