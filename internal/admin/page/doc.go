// Package page is the web page of the admin port: HTML that the server renders, a style
// sheet and a few small ES modules, all embedded in the program. [New] returns its
// handler.
//
// Each page is one row of the table in pages.go: its path, its title, its template and the
// function that reads what the template shows. The templates have the names of the pages
// and fill in layout.html. Every page works without JavaScript. live.js renews the parts
// of a page that are marked with data-live whenever the event stream of the API says that
// something has changed.
//
// Text from clients (names and data of znodes, addresses) is escaped by html/template,
// and funcs.go makes characters visible that a browser would not show, such as those that
// change the direction of text.
//
// The package decides nothing: it shows what the server publishes. Who may see and change
// what is decided by package access. It starts no goroutine and has no state. Read page.go
// first.
package page
