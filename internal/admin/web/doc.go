// Package web is the admin port: an HTTP server that answers ZooKeeper's AdminServer
// commands, health checks, metrics, the API and the page. [Open] opens the port, and
// [Port.Run] serves until its context ends.
//
// Goroutines: those of net/http, one for each connection. Run ends all of them.
//
// The port never makes the server's loop wait: a handler reads what the server publishes,
// or asks the loop and waits itself.
package web
