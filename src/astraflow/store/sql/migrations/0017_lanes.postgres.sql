-- `loads`: how many tasks wait in each lane that the node serves, of tenants with several. As JSON, by the name of the lane; empty: none.
ALTER TABLE nodes ADD COLUMN loads text COLLATE "C" NOT NULL DEFAULT '';
