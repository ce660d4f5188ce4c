// Package admission says what the webhook is asked about and by whom it is not:
// the table of Kubernetes' own controllers (docs/webhook.md, Who writes without
// receipts), and the ValidatingWebhookConfiguration that follows from the
// projection table and a policy. The API server evaluates its conditions; the
// webhook evaluates the same table again, because somebody else may have
// written the configuration.
package admission
