package schedule

// Instrumented says whether this is a build with the stand-ins. Package instrument sets
// it to true in such a build.
const Instrumented = false
