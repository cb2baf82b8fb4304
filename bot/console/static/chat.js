// The chat page: its parts start themselves; then the stream is followed.

import "./composer.js";
import { follow } from "./feed.js";

follow();
