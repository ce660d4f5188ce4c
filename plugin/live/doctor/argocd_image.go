package doctor

import (
	"fmt"
	"regexp"
	"strings"
)

// release is the tag of a release's image.
var release = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*(-[0-9A-Za-z.-]+)?$`)

// image looks whether the sidecar is the program that it is meant to be. What
// is looked at here is judged by this program: another version may read the same
// policy otherwise.
func (r *Report) image(o ArgoCD, side sidecar) {
	if !side.there {
		return // said
	}
	name, digest, _ := strings.Cut(side.image, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		tag = name[i+1:]
	}
	switch _, want, pinned := strings.Cut(o.Image, "@"); {
	case o.Image != "" && (pinned && digest != want || !pinned && side.image != o.Image):
		r.add("image", false, "set the image of container "+sidecarName+" to the release that you have verified, or name what it should be with --image",
			fmt.Sprintf("the sidecar is %s, want %s", clip(side.image), clip(o.Image)))
	case o.Image != "":
		r.add("image", true, "", "the sidecar is "+clip(o.Image))
	case release.MatchString(tag) && release.MatchString(o.Version):
		if strings.TrimPrefix(tag, "v") != strings.TrimPrefix(o.Version, "v") {
			r.add("image", false, "install the same version here and there",
				fmt.Sprintf("the sidecar is syncgate %s, and this is syncgate %s: they may read a policy otherwise", tag, o.Version))
			return
		}
		r.add("image", true, "", "the sidecar is syncgate "+tag+", as this is")
	default:
		r.Warnings = append(r.Warnings, fmt.Sprintf("whether the sidecar's image %q is this program, syncgate %s, cannot be seen: name what it should be with --image", clip(side.image), o.Version))
	}
}
