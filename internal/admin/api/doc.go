// Package api is Bellwether's own JSON interface below /v1 on the admin port. [New] returns its
// handler.
//
// Each operation is one row of the table in routes.go: its method and path, its parameters,
// the types of its request and answer, and the statuses of its errors. The handler refuses
// what the table does not list. The file openapi.json, which is embedded and served, describes the
// same; a test compares it with the table and the Go types. An error is a JSON object with
// what is wrong, where, and what to do.
//
// GET /v1/events is a stream of server-sent events, which events.go serves. The key
// admin.maxEventStreams limits how many are open at the same time.
//
// The package must be behind access.Access.Guard, which decides who may look. It refuses changes
// of viewers who are not signed in. It starts no goroutine. Read routes.go first.
package api
