// Package access decides who may see and change what on the admin port. [Access.Guard]
// wraps the handlers of the page and of the API: it refuses requests whose sender may see
// nothing, and passes on the others. A handler learns from [ViewerOf] who sent a request.
// docs/security.md states the rules.
//
// A request from a loopback address whose Host header is a loopback name or address may
// look. Every other request needs TLS and an operator who is signed in. A change needs an
// operator who is signed in, wherever the request comes from; see [Viewer.MayChange].
//
// The package knows no route except those of signing in and out. It starts no goroutine.
// Read access.go first.
package access
