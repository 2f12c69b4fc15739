// Package view reads what operators see from a server: the ensemble, znodes, recipes,
// sessions, connections and watches, as values that the API encodes as JSON and the page
// shows. [New] makes a [View] of a server; its methods return one value each.
//
// Every read is made for a viewer ([Who]) and obeys access-control lists: a viewer sees what a
// client at the viewer's address may read, and an operator sees everything. The package changes
// nothing.
//
// No read disturbs the service. The tree is read under its read lock, for one znode or a part
// of a list at a time. Work that grows with the tree or with the logs (a search, the pages of
// many children, recipes, the history of a znode) has a limit of znodes, bytes and time, and
// at most heavyMax such reads run at the same time. What was left out because of a limit or an
// access-control list is reported (the fields Complete and Hidden).
//
// The figures of other servers come from four-letter words, which are sent to all of them in
// parallel, at most once in pollEvery for all viewers together. These are the only goroutines,
// and the call that starts them waits for them.
//
// The figures of the ensemble, the elections and the paths with most watches are kept for a
// second for all viewers (cached.go). Each has a lock, which is not held while anything is
// read. Read view.go first.
package view
