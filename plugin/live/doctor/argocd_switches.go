package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

// switches looks for applications whose refusals an administrator lets pass.
func (r *Report) switches(ctx context.Context, c *live.Cluster, o ArgoCD, side sidecar) error {
	const fix = "syncgate on --app NAME, when it is no longer needed; it ends by itself"
	now := time.Now()
	at := fmt.Sprintf("ConfigMap %s/%s", o.ArgoNamespace, offswitch.ConfigMap)
	kept, err := c.Switches(ctx, o.ArgoNamespace, now)
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	var details []string
	for _, k := range kept {
		until, err := time.Parse(time.RFC3339, k.Until)
		switch {
		case k.Problem != "" || err != nil:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s, key %s: no off-switch: %s", at, clip(k.Key), clip(k.Problem)))
		case k.App == "" || !until.After(now): // the webhook's, or it has ended
		case side.env["SYNCGATE_OFF"] == "" && !side.blind:
			r.Warnings = append(r.Warnings, fmt.Sprintf("application %s is switched off until %s, and the sidecar has no SYNCGATE_OFF: it is refused all the same", k.App, k.Until))
		default:
			details = append(details, fmt.Sprintf("application %s: what policy refuses passes until %s, by %s: %s", k.App, k.Until, k.By, k.Reason))
		}
	}
	if len(details) > 0 {
		r.add("switches", false, fix, details...)
		return nil
	}
	r.add("switches", true, "", "no application is switched off")
	return nil
}
