// Package web is the admin port: an HTTP server that answers ZooKeeper's AdminServer
// commands, health checks, metrics, the API and the page. [Open] opens the port, and
// [Port.Run] serves until its context ends.
//
// The port never makes the server's loop wait: a handler reads what the server publishes,
// or asks the loop and waits itself.
//
// Goroutines: one that accepts connections, one for each connection (of net/http), one for
// Options.Collect, and one that watches the files of certificates if the configuration says
// so. With TLS, each connection also has one until it is passed to net/http, which on a port
// for HTTP and HTTPS is when its first byte has arrived. Run ends all of them, and waits for
// every handler.
//
// There are limits on what an unknown client can use: the number of connections, in total and
// of one address (listen.go); the time for a header, for a body and for a client that does not
// read; and the size of headers and bodies (harden.go). Read web.go first, then harden.go.
package web
