// Package cache holds the state machine of a [Cache], a copy of a tree that follows it.
//
// What the watch of a tree tells is stepped as claim.Told, before the Reply to anything that the server
// answered later; its end is stepped as claim.WatchOver. All reads of a step are one request.
//
// Read cache.go first, then cache_follow.go and cache_read.go.
package cache
