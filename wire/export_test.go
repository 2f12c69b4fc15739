package wire

// What tests outside of the package need to see.
var (
	CodeNames = codeNames
	OpNames   = opNames
	MultiEnd  = multiEnd
	FrameLen  = frameLen
)

const FrameHeaderLen = frameHeaderLen
