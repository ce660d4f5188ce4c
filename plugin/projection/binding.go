package projection

import (
	"strings"
)

// boundCategories are granted to a program, not to a container name: a
// container that contributes to one also contributes its repository.
var boundCategories = []Category{Identity, Privilege, Secret}

// bindRepositories adds containers[x].image#repository, the reference without
// tag and digest, to each bound category that the container, or the pod as a
// whole, has a leaf in. A version bump changes nothing there; another program
// in the same container needs the issuer of that category.
func (w *walker) bindRepositories(containers []*container) {
	for _, c := range containers {
		bits := c.bits
		for p := c.pod; p != nil; p = p.parent {
			bits |= p.bits
		}
		image, _ := c.tree["image"].(string)
		for _, cat := range boundCategories {
			if bits&bit(cat) != 0 {
				w.leaves = append(w.leaves, Leaf{Category: cat, Path: c.path + ".image" + repositoryPath, Value: Repository(image), binding: true})
			}
		}
	}
}

// Repository returns an image reference without tag and digest, as written
// otherwise. A port is not a tag.
func Repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// repositoryPath is what the path of an image's repository ends in.
const repositoryPath = "#repository"

// IsBinding reports whether a path is that of an image's repository, which is a
// leaf because of another field and moves with it. Nothing else ends so: a name
// that holds a '#' is a JSON string.
func IsBinding(path string) bool { return strings.HasSuffix(path, repositoryPath) }

func bit(c Category) uint16 {
	switch c {
	case Identity:
		return 1
	case Privilege:
		return 2
	case Secret:
		return 4
	}
	return 0
}
