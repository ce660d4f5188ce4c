package controller

// OwnProject is the AppProject of the gate's own configuration. Its Applications
// need no plugin.
const OwnProject = plugin

// Gates reports whether a project is one in which every source is meant to name
// the plugin.
func (o Options) Gates(project string) bool { return o.gates(project) }
