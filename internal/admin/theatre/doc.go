// Package theatre draws elections: [Elections] brings together what several servers
// recorded about the same election, and [Election.Draw] returns the drawing and a table of
// the same facts.
//
// The drawing has a lifeline for each server, arrows for the votes that they sent each
// other, a label with candidate, zxid and round wherever a server changed its vote, its
// waits, its decision, and the phases after it. Below it a bar for each server shows, to
// scale, how long each phase took. Each server has a colour, and a lifeline has the
// colour of the candidate of its server's vote, so that one can see how they come to
// agree. The drawing is an SVG file that needs no script; the style sheet is [Style], and
// the data- attributes let a script replay it.
//
// The clocks of servers differ. The package moves the record of a server in time only if
// a vote would otherwise have arrived before it was sent, and [Election.Clocks] says so.
// The records are exact to about a millisecond. Within that, causes are drawn to the left of
// their effects.
//
// Records come from other servers, so the drawing has a limited size whatever the records
// contain. Votes that are left out are counted.
//
//	merge.go ▸ elections      clocks.go ▸ one time for all      scene.go ▸ lifelines, messages, points
//	layout.go ▸ where each point is drawn      draw.go, bars.go ▸ SVG      facts.go ▸ table
package theatre
