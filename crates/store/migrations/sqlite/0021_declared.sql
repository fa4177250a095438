-- What a template version declares, as JSON; null for versions that were pushed before this was kept.
ALTER TABLE templates ADD COLUMN declared TEXT;
CREATE INDEX generations_by_template ON generations (template, template_version);
