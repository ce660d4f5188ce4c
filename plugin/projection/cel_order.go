package projection

import "fmt"

// sameOrder is CEL that holds if the containers of two pod specs that run one
// after the other stand in the same order: lists of containers are compared by
// name, wherever an item stands.
var sameOrder = map[string]func(x, y string) string{"core/v1.PodSpec": func(x, y string) string {
	order := func(x string) string {
		return fmt.Sprintf("(has(%s.%s) && %s.%s != null ? %s.%s.map(c, c.?name.orValue('')) : [])", x, initContainers, x, initContainers, x, initContainers)
	}
	return order(x) + " == " + order(y)
}}

// sidecarTree compares the restartPolicy of two containers: only one of an init
// container counts, but the three lists of containers share one text.
func sidecarTree() *tree {
	return &tree{empty: "''", form: func(_ *celWriter, e ends) string {
		return fmt.Sprintf("%s != %s && %s != %s", e.x, quote(sidecar), e.y, quote(sidecar))
	}}
}
