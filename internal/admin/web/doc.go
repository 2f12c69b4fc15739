// Package web is the admin port: an HTTP server that answers ZooKeeper's AdminServer
// commands, health checks, metrics, the API and the page. [Open] opens the port, and
// [Port.Run] serves until its context ends.
//
// The port never makes the server's loop wait: a handler reads what the server publishes,
// or asks the loop and waits itself.
//
// Goroutines: one that accepts connections, one for each connection (of net/http), one that
// watches the files of certificates if the configuration says so. Where HTTP and HTTPS
// share the port, each connection also has one until its first byte has come. Run ends all
// of them, and waits for every handler.
//
// What a stranger can use up is bounded: connections in total and of one address
// (listen.go), the time for a header, for a body and for a client that does not read, the
// size of headers and bodies (harden.go). Read web.go first, then harden.go.
package web
