package interop

// excused are the differences that are meant. Each tag is a row of
// docs/differences.md, which gives the reason.
var excused = []excuse{}
