package wire

// Identifiers that only the tests outside of the package need.
var (
	CodeNames = codeNames
	OpNames   = opNames
	MultiEnd  = multiEnd
	FrameLen  = frameLen
)

const FrameHeaderLen = frameHeaderLen
